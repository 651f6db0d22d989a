"""Whether failures lose what was reported: kills, outages, crowds, upgrades and restored backups, counted."""
