"""What this machine is and what it offers: `fingerprint` reads, and changes nothing."""
