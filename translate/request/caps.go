package request

import (
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

// The media that clients send. Engines take images, if the model has vision.
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
	return note, translate.Refused("unsupported_content", where,
		"is of the kind %s, which this server does not take: send text or images. "+leaveOut, m)
}

// Seen returns the items of a stored conversation as the model can take them: with notes in place of images if it can't see any. It is an
// error unless the operator has images left out. The items themselves aren't changed.
func (c *Caps) Seen(model string, items []translate.Item) ([]translate.Item, *translate.Error) {
	if c.Vision {
		return items, nil
	}
	isCopy := false
	for i := range items {
		if !translate.HasMedia(items[i].Parts) {
			continue
		}
		if !c.OmitsUnseen {
			return nil, translate.Invalid("unsupported_content", "model",
				"The conversation has images, which the model "+model+" does not take: choose a model with vision. "+leaveOut)
		}
		if !isCopy {
			items, isCopy = slices.Clone(items), true
		}
		items[i].Parts = slices.Clone(items[i].Parts)
		for n := range items[i].Parts {
			if part := &items[i].Parts[n]; part.Media != nil {
				*part = translate.Part{Text: MediumImage.omitted()}
			}
		}
	}
	return items, nil
}
