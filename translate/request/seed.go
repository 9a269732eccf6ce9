package request

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// RandomSeed leaves the choice of a seed to the engine. OpenAI's API takes every other whole number as a seed whose answers can be repeated.
const RandomSeed = -1

// seeds is the number of engines' seeds: they have 32 bits, and the largest such number asks for a random one.
const seeds = 1<<32 - 1

// ParseSeed returns the seed by which an engine is asked for that of a client, or RandomSeed. A seed that an engine has stands for itself. Others
// are the remainder of their division by the number of seeds, to which all 64 bits of a number contribute. The path is for errors.
func ParseSeed(path string, v gjson.Result) (int, *translate.Error) {
	if v.Type == gjson.Number {
		if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
			return seedOf(n), nil
		}
		if n, err := strconv.ParseUint(v.Raw, 10, 64); err == nil {
			return int(n % seeds), nil
		}
		if v.Num == math.Trunc(v.Num) && !math.IsInf(v.Num, 0) { // such as 1e2; 1e999 is read as infinity
			return seedOf(int64(math.Mod(v.Num, seeds))), nil
		}
	}
	return 0, jsonbody.WrongType(path, "a whole number", v)
}

func seedOf(n int64) int {
	if n == RandomSeed {
		return RandomSeed
	}
	return int((n%seeds + seeds) % seeds)
}

// parseSeed is [ParseSeed] as a field of a chat.
func parseSeed(v gjson.Result, _ *Caps, e *jsonbody.Edit) *translate.Error {
	n, err := ParseSeed("seed", v)
	if text := strconv.Itoa(n); err == nil && text != v.Raw {
		e.Set("seed", text)
	}
	return err
}

// Seed returns the seed that an engine is asked for, or RandomSeed. Choices have seeds that follow one another: they differ, but can be repeated.
func (c *Chat) Seed(body *jsonbody.Body, choice int) int {
	raw := c.Edit.Value(body, "seed")
	if !jsonbody.IsGiven(raw) {
		return RandomSeed
	}
	n, err := ParseSeed("seed", gjson.ParseBytes(raw))
	if err != nil {
		return RandomSeed
	}
	return following(n, choice)
}

// SeedOf is like [Chat.Seed], for a candidate.
func (c *Completion) SeedOf(candidate int) int { return following(c.Seed, candidate) }

func following(seed, choice int) int {
	if seed == RandomSeed {
		return RandomSeed
	}
	return (seed + choice) % seeds
}
