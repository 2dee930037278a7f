"""What several tables share: storage, Ethernet, audio, boot, ..."""
