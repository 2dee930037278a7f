"""GitLab: the nightly pipeline, generated from the board files, and the note on a merge request."""
