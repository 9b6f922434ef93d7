"""Small helpers without news in them: numbers from outside, texts for people, extras."""
