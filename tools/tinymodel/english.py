"""Ordinary English words, for the vocabulary of the embedding models.

Any other word is spelled out by its letters, so the lists need not be
complete. STOP_WORDS say little of what a text is about.
"""

STOP_WORDS = """
a about after all also am an and any are as at be because been before being
both but by can could did do does doing done down each either else even ever
every few for from get gets got had has have having he her here hers him his
how i if in into is it its just let like made make makes many may me might
more most much must my no nor not now of off on once one only or other our
out over own per same shall she should so some such than that the their them
then there these they this those through to too under until up upon us very
was we well were what when where which while who whom whose why will with
would yes yet you your yours
""".split()

PLAIN_WORDS = """
able above accept account across act actor add address age agent ago agree
air airport alarm alive alone along already always among amount ancient angry
animal answer ant apple april architecture area argument arm army around
arrive art article ask asleep atom attack august aunt author autumn average
away baby back bad bag bake ball banana band bank bar base basic basket bat
bath battery bay beach bean bear beautiful become bed bee beer begin behind
believe bell below berlin best better between bicycle big bill bird birthday
bite black blood blow blue board boat body bone book border born boss bottle
bottom box boy brain branch bread break breakfast bridge bright bring brother
brown bug build building burn bus business busy butter button buy cache cake
calendar call camera camp capital car card care carry cat catch cause cell
center century chain chair chance change cheap check cheese chemical chess
chicken child children china choose church circle city class clean clear
client climb clock close cloth cloud club coast coat code coffee cold collect
college color colour come command common company compare computer config cook
cool copper copy corn corner cost cotton count country course court cousin
cover cow create cross crowd cry culture cup current customer cut daily damage
dance danger dark data database date daughter day dead deal dear death
december decide deep deer delete density deploy desert design desk detail
device dictionary die dinner direct dirty disk distance doctor document dog
dollar door double doubt download draw dream dress drink drive drop dry duck
dust eagle ear early earth east easy eat economy edge education egg eight
electric elephant eleven email embed embedding empty end enemy energy engine
engineer england english enjoy enough enter equal error europe evening event
example exercise expect expensive experiment explain eye face fact factory
fail fair fall family famous far farm farmer fast father fear february feed
feel field fight file fill film final find fine finger finish fire first fish
five fix flag floor flour flower fly follow food foot football forest forget
fork form forward four fox france free freeze french fresh friday friend frog
front fruit full fun function funny future game garden gas gate general
germany ghost giant gift giraffe girl give glad glass go goat gold good
government grain grandfather grandmother grape graph grass gray great green
ground group grow guess guest guide guitar hair half hall hand happen happy
hard hat head health hear heart heat heavy height hello help hide high hill
history hit hold hole holiday home honey hope horse hospital host hot hotel
hour house human hundred hungry hunt hurry husband ice idea important inch
index industry insect install instead interest internet iron island italy
january japan jazz job join joke judge juice july jump june keep key keyboard
kill kind king kitchen knee knife knock know lake lamb lamp land language
large last late laugh law lay lazy lead leaf learn leave left leg lemon lesson
letter level library license life lift light line lion list listen literature
little live load local location lock log london long look lose lost love low
luck lunch machine mail main man map march mark market marry matter meal
mean meaning measure meat medicine meet member memory message metal method
middle midnight mile milk million mind minute mirror miss mistake mix model
modern moment monday money monkey month moon morning mother motor mountain
mouse mouth move movie museum music name narrow nation nature near neck need
neighbour network neural never new news next nice night nine noise noon north
nose note nothing november number nurse ocean october offer office oil old
olive open opera orange order ordinary outside page pain paint pair panda
paper parent paris park part party pass past paste path pay peace pen pencil
people pepper perfect period person phone photo physics piano picture piece
pig pilot pink pipe place plan plane planet plant plate play player please
plum pocket poem point poison police polite pool poor popular port possible
potato pound power prefer prepare present press price print prison problem
process program project promise prove public pull pump purple purpose push put
python queen query question quick quiet quite rabbit race radio rain raise
rank reach read ready real reason receive recipe record red region remember
remove rent repair repeat reply report request rest restaurant result return
rice rich ride right ring rise river road robot rock rocket roll roof room
root rose round row rule run russia sad safe sail salad salt sand saturday
save say scene school science scientist score sea search season seat second
secret see seed sell send sentence september serious server service set seven
shade shadow shape share sharp sheep shine ship shirt shoe shop short
shoulder shout show sick side sign silent silver similar simple sing sister
sit six size skill skin sky sleep slow small smell smile smoke snake snow
soap social society soft software soil soldier son song soon sorry sound
soup south space spain speak special speed spell spend spoon sport spring
square stand star start state station stay steal steam steel step still stone
stop store storm story straight strange street strong student study sugar
summer sun sunday supply support sure surface surprise sweet swim system table
take talk tall taste tax tea teach teacher team tell temperature ten tennis
test text thank theory thick thin thing think third thirsty three thunder
thursday ticket tie tiger time tired title today together token tokyo tomato
tomorrow tongue tool tooth top touch tower town toy trade train translate
travel tree triangle trip trouble true trust try tuesday turn twelve twenty
twice two uncle understand university update upload use useful user valley
value vector vegetable version video village violin visit voice wait wake walk
wall want war warm wash waste watch water wave way weak wealth wear weather
web wednesday week weigh weight welcome west wet whale wheat wheel white wide
wife wild win wind window wine wing winter wise wolf woman wood word work
world worry write wrong yard year yellow yesterday young zebra zero zoo
""".split()

ENDINGS = """
s es ed er ers est ing ings ly y al ion ions tion able less ness ment ful
n't ize ized or ity ive ous ic ist ism
""".split()
