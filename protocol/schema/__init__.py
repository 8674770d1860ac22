"""Message declarations turned into codecs; the only importer of construct."""
