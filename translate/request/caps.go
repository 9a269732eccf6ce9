package request

import "slices"

// Caps is what is known of a model and its engine without loading it.
type Caps struct {
	Vision     bool // takes images
	MaxContext int  // the longest context, in tokens; 0: unknown
	RawGrammar bool // requests may bring a grammar of their own, where the engine takes one

	// Reasoning is what the model offers for choosing how much it thinks: some of the native API's words "off", "low",
	// "medium", "high" and "on". Empty: it offers nothing, as far as its files tell; nil: unknown.
	Reasoning []string

	// The engine's own fields, beside those of Sampling and TextSampling.
	ChatFields, TextFields Fields

	NoLogprobsWithTools bool // the engine gives no log probabilities where there are tools
}

// Thinks tells whether a model may think before it answers, as far as it is known.
func (c *Caps) Thinks() bool { return c.Reasoning == nil || len(c.Reasoning) > 0 }

// CanBeSilent tells whether a model's thinking can be turned off, as far as it is known.
func (c *Caps) CanBeSilent() bool { return c.Reasoning == nil || slices.Contains(c.Reasoning, "off") }

// TakesGrammar tells whether the field "grammar" of a chat shapes the answer.
func (c *Caps) TakesGrammar() bool { return c.ChatFields["grammar"] != nil }
