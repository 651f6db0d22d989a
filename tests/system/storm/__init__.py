"""A storm: processes change what lessons may be handed out while others ask for them, and every answer is checked."""
