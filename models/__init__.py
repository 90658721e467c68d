"""WHAT IS TRUE: rows, the verbs that change them, the rules that allow it."""
