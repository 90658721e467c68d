"""The words of the pages, explained."""
