package access

import (
	"errors"
	"testing"
)

func TestBodies_EachOwnersAreBounded(t *testing.T) {
	t.Parallel()
	bodies := new(Bodies)
	bodies.SetBound(4 << 20)
	const kib = 1 << 10
	claims := map[string]*BodyClaim{}
	for _, step := range []struct {
		claim, owner string
		bytes        int64
		want         string
	}{
		{"a", "ann", 64 * kib, ""},
		{"a", "ann", 900 * kib, ""},
		{"b", "ann", 64 * kib, ""}, // small
		{"b", "ann", 200 * kib, "limit"},
		{"b", "ann", 100 * kib, ""},
		{"c", "bob", 3 << 20, "busy"},
		{"c", "bob", 2 << 20, ""},
		{"c", "bob", 500 * kib, ""}, // it is alone
		{"d", "bob", 200 * kib, "limit"},
		{"d", "eve", 200 * kib, ""},
		{"d", "eve", 300 * kib, "busy"},
		{"a", "ann", -964 * kib, ""},
		{"b", "ann", 700 * kib, ""},
	} {
		c := claims[step.claim]
		if c == nil || c.owner != step.owner {
			made := bodies.Claim(step.owner)
			c = &made
			claims[step.claim] = c
		}
		if step.bytes < 0 {
			c.Shrink(-step.bytes)
			continue
		}
		err := c.Grow(step.bytes)
		var busy *BusyError
		var limit *LimitError
		got := ""
		switch {
		case errors.As(err, &busy):
			got = "busy"
		case errors.As(err, &limit):
			got = "limit"
		}
		if got != step.want {
			t.Errorf("%+v: %v", step, err)
		}
	}
	for _, c := range claims {
		c.Release()
		c.Release()
	}
	if held := bodies.Held(); held != 0 || len(bodies.owners) != 0 {
		t.Errorf("%d bytes are left, of %v", held, bodies.owners)
	}
}
