package request

import "slices"

// Caps describes what a model and its engine can do, as far as is known without loading it.
type Caps struct {
	Vision bool // accepts images
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
