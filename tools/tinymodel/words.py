"""The lists from which conversations are drawn.

Ordinary words teach the model to answer; the random letters that
`conversations` mixes in teach it to copy words it has never seen.
"""

NAMES = """
Alice Bob Carol David Emma Frank Grace Henry Iris Jack Kate Liam Mia Noah
Olivia Paul Quinn Rose Sam Tina Uma Victor Wendy Xander Yara Zoe Anna Ben
Clara Daniel Eva Felix Gina Hugo Ivan Julia Karl Lena Max Nora Otto Petra
Ravi Sara Tom Vera Will Amir Bella Chen Dora Elif Farid Hana Igor Jin Kofi
Lucia Marco Nadia Omar Priya Rosa Sven Tariq Ursula
""".split()

CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Japan": "Tokyo",
    "China": "Beijing",
    "India": "New Delhi",
    "Egypt": "Cairo",
    "Kenya": "Nairobi",
    "Brazil": "Brasilia",
    "Canada": "Ottawa",
    "Mexico": "Mexico City",
    "Poland": "Warsaw",
    "Greece": "Athens",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Finland": "Helsinki",
    "Denmark": "Copenhagen",
    "Austria": "Vienna",
    "Portugal": "Lisbon",
    "Turkey": "Ankara",
    "Peru": "Lima",
    "Chile": "Santiago",
    "Cuba": "Havana",
    "Ireland": "Dublin",
}

# "garden" and "forest" stand twice; that doubles their chance and no more.
WORDS = """
apple river stone cloud green quick silent bright table window garden music
paper light water mountain road bridge coffee winter summer morning evening
blue red small large happy open closed first last north south house school
market train plane ship friend story letter number answer question secret
simple garden forest ocean desert island city village king queen doctor
teacher farmer baker pilot robot rocket planet star moon sun
""".split()

TOOL_NAMES = """
echo get-sum get_weather search read_file write_file list_files fetch
query_db send_mail get_time translate add multiply lookup calculator
print_env create_note find_user get_price run_job status model_search
browser_open
""".split()

ARGUMENT_NAMES = """
message text query path location city a b name value url id count user lang
to from key input note
""".split()

FILE_ENDINGS = ["txt", "md", "json", "go"]
