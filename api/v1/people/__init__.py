"""People, invitations, groups and delegations, in the form of the SDK's `beta.organization`."""
