"""Key services that come with the package, one file each."""
