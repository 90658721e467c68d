"""Which calls need people, and who may decide: the rules, the grants, the votes."""
