package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// slashes are what can be typed in a conversation besides questions, as /help lists them.
var slashes = []struct{ name, arguments, what string }{
	{"/help", "", "lists these"},
	{"/model", "[NAME]", "goes on with another model, or lists the models"},
	{"/set", "[NAME VALUE]", "temperature, system, reasoning, stats; also to \"default\""},
	{"/image", "FILE", "adds an image to the next question"},
	{"/new", "", "begins another conversation, with the same settings"},
	{"/save", "FILE", "writes the conversation as Markdown, or JSON to a .json file"},
	{"/bye", "", "leaves, and says how to go on later"},
}

// otherWords are what people type elsewhere, and what it is called here.
var otherWords = map[string]string{
	"/?": "/help", "/exit": "/bye", "/quit": "/bye", "/q": "/bye", "/clear": "/new", "/reset": "/new", "/load": "/model", "/show": "/set",
	"/export": "/save", "/system": "/set", "/models": "/model", "/settings": "/set",
}

const helpOnLines = `
Alt-Enter begins another line, and so does a backslash at the end of one; """
at the beginning and at the end enclose several lines. A pasted text waits for
Enter. The up arrow and Ctrl-R find earlier questions.
`

func completeSlash(begun string) []string {
	var names []string
	for _, s := range slashes {
		if strings.HasPrefix(begun, "/") && strings.HasPrefix(s.name, begun) {
			names = append(names, s.name)
		}
	}
	return names
}

func (s *conversation) command(ctx context.Context, line string) error {
	name, argument, _ := strings.Cut(line, " ")
	argument = strings.TrimSpace(argument)
	var err error
	switch strings.ToLower(name) {
	case "/help", "/?":
		s.help()
	case "/model":
		err = s.switchModel(ctx, argument)
	case "/set":
		err = s.set(argument)
	case "/image":
		err = s.addImage(argument)
	case "/new":
		s.begun, s.request.Previous = "", ""
		s.request.System = s.system
		s.note("A new conversation.")
	case "/save":
		err = s.save(ctx, argument)
	case "/bye", "/exit", "/quit":
		return errLeave
	default:
		err = errors.New(unknownSlash(name))
	}
	if err != nil {
		s.note("Error: " + kit.InWords(s.to.InWords(s.client, err, argument).Error()))
	}
	return nil
}

func (s *conversation) note(text string) { fmt.Fprintln(s.cmd.ErrOrStderr(), terminal.Text(text)) }

func (s *conversation) help() {
	table := terminal.NewTable(s.cmd.ErrOrStderr())
	for _, c := range slashes {
		terminal.Printf(table, "%s\t%s\n", strings.TrimSpace(c.name+" "+c.arguments), c.what)
	}
	_ = table.Flush() // to a terminal
	fmt.Fprint(s.cmd.ErrOrStderr(), helpOnLines)
}

func unknownSlash(name string) string {
	said := name + " isn't known"
	if word, ok := otherWords[strings.ToLower(name)]; ok {
		return said + ": did you mean " + word + "?"
	}
	if names := completeSlash(strings.ToLower(name)); len(names) > 0 && len(name) > 1 {
		return said + ": did you mean " + strings.Join(names, " or ") + "?"
	}
	if meant := nearest.DidYouMean(name, completeSlash("/")); meant != "" {
		return said + meant
	}
	return said + ": /help lists what is. A question that begins with a slash needs a space before it"
}

func (s *conversation) switchModel(ctx context.Context, name string) error {
	if name == "" {
		list, err := s.client.Models(ctx)
		if err != nil {
			return err
		}
		for i := range list.Models {
			if m := &list.Models[i]; m.Type == "llm" {
				mark := " "
				if kit.GoesBy(m.Key, s.request.Model) || kit.HasAlias(m.Aliases, s.request.Model) {
					mark = "*"
				}
				s.note(mark + " " + terminal.Line(m.Key))
			}
		}
		return nil
	}
	asking, _, stop := s.interruptible(ctx)
	defer stop()
	name, err := s.fetchMissing(asking, s.client, name)
	if err != nil {
		return err
	}
	s.request.Model = name
	s.note("Going on with " + terminal.Line(name) + ".")
	return nil
}

var settings = []string{"temperature", "system", "reasoning", "stats"}

// checkTemperature returns an error unless a temperature, which was typed so, is one that models take.
func checkTemperature(t float64, typed string) error {
	if t >= 0 && t <= 1 { // not a NaN
		return nil
	}
	return fmt.Errorf("the temperature is a number from 0 to 1, not %s", typed)
}

// set changes a setting, or shows them.
func (s *conversation) set(argument string) error {
	name, value, _ := strings.Cut(argument, " ")
	value = strings.TrimSpace(value)
	isDefault := value == "default"
	switch {
	case name == "":
		s.showSettings()
		return nil
	case value == "":
		if !slices.Contains(settings, strings.ToLower(name)) {
			break
		}
		return fmt.Errorf("/set %s needs a value; /set shows what is set", name)
	}
	switch strings.ToLower(name) {
	case "temperature":
		if isDefault {
			s.request.Temperature = nil
			return nil
		}
		t, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t = math.NaN()
		}
		if err := checkTemperature(t, value); err != nil {
			return err
		}
		s.request.Temperature = &t
	case "reasoning":
		if !isDefault && !slices.Contains(reasonings, value) {
			return fmt.Errorf("reasoning can't be %s%s", value, cmp.Or(nearest.DidYouMean(value, reasonings),
				": it is off, low, medium, high or on, and not every model has each"))
		}
		s.request.Reasoning = value
		if isDefault {
			s.request.Reasoning = ""
		}
	case "system":
		if isDefault {
			value = ""
		}
		s.request.System, s.system = &value, &value
	case "stats":
		if value != "on" && value != "off" {
			return errors.New("stats are on or off")
		}
		s.stats = value == "on"
	default:
		return fmt.Errorf("%s can't be set%s", name, cmp.Or(nearest.DidYouMean(name, settings),
			": temperature, system, reasoning and stats can"))
	}
	return nil
}

func (s *conversation) showSettings() {
	temperature, reasoning, system := "default", "default", "none"
	if s.request.Temperature != nil {
		temperature = strconv.FormatFloat(*s.request.Temperature, 'g', -1, 64)
	}
	if s.request.Reasoning != "" {
		reasoning = s.request.Reasoning
	}
	if s.system != nil && *s.system != "" {
		system = *s.system
	}
	stats := "off"
	if s.stats {
		stats = "on"
	}
	s.note("model        " + terminal.Line(s.request.Model))
	s.note("temperature  " + temperature)
	s.note("reasoning    " + reasoning)
	s.note("stats        " + stats)
	s.note("system       " + system)
}

func (s *conversation) addImage(argument string) error {
	if argument == "" {
		return errors.New("/image needs a file: /image photo.jpg")
	}
	image, err := readImage(pathIn(argument))
	if err != nil {
		return err
	}
	s.images = append(s.images, image)
	return nil
}

func (s *conversation) save(ctx context.Context, argument string) error {
	path := pathIn(argument)
	switch {
	case path == "":
		return errors.New("/save needs a file: /save chat.md")
	case s.begun == "":
		return errors.New("there is nothing to save yet")
	}
	found, err := s.client.Conversation(ctx, nil, s.request.Previous, true)
	if err != nil {
		return explainConversation(err)
	}
	if err := exportTo(path, exported{[]resource.Conversation{found}, true}, formatOf(path), path == s.saved); err != nil {
		return err
	}
	s.saved = path
	s.note("Saved to " + path + ".")
	return nil
}
