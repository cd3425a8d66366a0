"""What a team did, read from its episodes: where evidence is lost, how each role behaves, and when that changed."""
