"""The process that runs programs; a folder of its own, so that nothing beside it shadows the standard library."""
