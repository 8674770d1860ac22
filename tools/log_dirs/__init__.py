def add_parser(commands): commands.add_parser(__name__)
