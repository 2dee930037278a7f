"""What people and jobs call: use cases, the command line, nights of many boards, LAVA and GitLab."""
