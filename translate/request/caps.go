package request

import (
	"fmt"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Caps describes what a model and its engine can do, as far as is known without loading it.
type Caps struct {
	Vision bool // accepts images
	Audio  bool // accepts recordings
	// OmitsUnseen says that content that the model can't take is left out, with a note to the model, and not refused.
	OmitsUnseen bool
	MaxContext  int  // maximum context length in tokens; 0 if unknown
	Vocabulary  int  // number of tokens that the model knows; 0 if unknown
	RawGrammar  bool // requests may have a grammar, if the engine supports it

	// Reasoning has the settings for how much the model thinks: some of "off", "low", "medium", "high" and "on". It is
	// empty if the model has no settings, and nil if that is unknown.
	Reasoning []string

	// Template is what is known of the model's chat template; nil if it was never rendered.
	Template *Template

	// Fields of the engine besides Sampling and TextSampling.
	ChatFields, TextFields Fields

	NoLogprobsWithTools bool // the engine gives no log probabilities if there are tools
}

// Thinks reports whether a model may think before it answers. It is true if that is unknown.
func (c *Caps) Thinks() bool { return c.Reasoning == nil || len(c.Reasoning) > 0 }

// CanBeSilent reports whether the thinking of a model can be turned off. It is true if that is unknown.
func (c *Caps) CanBeSilent() bool { return c.Reasoning == nil || slices.Contains(c.Reasoning, "off") }

// TakesGrammar reports whether the engine supports the field "grammar" of a chat.
func (c *Caps) TakesGrammar() bool { return c.ChatFields["grammar"] != nil }

// Medium is a kind of content besides text.
type Medium string

// The media that clients send. Engines take images and audio, if the model has a projector for them.
const (
	MediumImage    Medium = "image"
	MediumDocument Medium = "document"
	MediumAudio    Medium = "audio"
	MediumVideo    Medium = "video"
)

func (m Medium) omitted() string {
	if m == MediumImage {
		return "[image omitted: this model can't see images]"
	}
	return "[" + string(m) + " omitted: this model can only read text]"
}

func (m Medium) noun() string {
	if m == MediumAudio {
		return "recording"
	}
	return string(m)
}

func (m Medium) code() string { return "invalid_" + string(m) }

// bad is the error of a field that holds a file which isn't as it has to be.
func (m Medium) bad(where, is string) *translate.Error {
	if m == MediumAudio {
		return translate.Refused(m.code(), where, "holds a recording %s.", is)
	}
	return translate.Refused(m.code(), where, "holds an %s %s.", m, is)
}

const leaveOut = `The server's option "unsupported_content omit" leaves such content out, with a note to the model.`

// Unseen returns what a model gets in place of content that it can't take. It is an error unless the operator has it left out.
func (c *Caps) Unseen(where string, m Medium) (note translate.Part, _ *translate.Error) {
	if c.OmitsUnseen {
		return translate.Part{Text: m.omitted()}, nil
	}
	if m == MediumImage {
		return note, translate.Refused("unsupported_content", where,
			"is an image, and the model does not take images: choose a model with vision, or send none. "+leaveOut)
	}
	if m == MediumAudio {
		return note, translate.Refused("unsupported_content", where,
			"is a recording, and the model does not take audio: choose a model with a projector for it, or send none. "+leaveOut)
	}
	return note, translate.Refused("unsupported_content", where,
		"is of the kind %s, which this server does not take: send text or images. "+leaveOut, m)
}

// Seen returns the items of a stored conversation as the model can take them: with notes in place of files that it doesn't take. It is an
// error unless the operator has them left out. The items themselves aren't changed.
func (c *Caps) Seen(model string, items []translate.Item) ([]translate.Item, *translate.Error) {
	isCopy := false
	for i := range items {
		given := items[i].Parts
		for n := range given {
			medium, has := MediumImage, "images, which the model %s does not take: choose a model with vision. "
			isSeen := c.Vision
			if media := given[n].Media; media == nil {
				continue
			} else if media.AudioFormat() != "" {
				medium, has = MediumAudio, "audio, which the model %s does not take: choose a model with a projector for it. "
				isSeen = c.Audio
			}
			switch {
			case isSeen:
				continue
			case !c.OmitsUnseen:
				return nil, translate.Invalid("unsupported_content", "model", "The conversation has "+fmt.Sprintf(has, model)+leaveOut)
			case !isCopy:
				items, isCopy = slices.Clone(items), true
			}
			if &items[i].Parts[0] == &given[0] {
				items[i].Parts = slices.Clone(given)
			}
			items[i].Parts[n] = translate.Part{Text: medium.omitted()}
		}
	}
	return items, nil
}
