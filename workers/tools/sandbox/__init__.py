"""Running commands that cannot leave their folder, exceed their limits or outlive their lease."""
