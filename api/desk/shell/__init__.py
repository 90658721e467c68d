"""The frame of every page, what declares a page, and the files that all pages share."""
