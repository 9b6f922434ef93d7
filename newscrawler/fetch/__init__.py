"""The one way out: what every fetch of this program keeps to, whoever asks for it."""
