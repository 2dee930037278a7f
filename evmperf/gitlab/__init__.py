"""GitLab: the nightly pipeline, made of the board files, and the note on a merge request."""
