package schema

import "testing"

// What is wrong is told in the same order each time.
func TestChecker_Order(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"properties":{"d":{"type":"string"},"b":{"type":"string"},"a":{"type":"string"},"c":{"type":"string"}},"required":["e"]}`: "missing property 'e'; at '/a': got number, want string; at '/b': got number, want string; " +
			"at '/c': got number, want string; at '/d': got number, want string",
		`{"properties":{"b":{"anyOf":[{"type":"string"},{"type":"null"}]},"a":{"type":"string"}}}`: "at '/a': got number, want string; at '/b': 'anyOf' failed; " +
			"at '/b': got number, want string; at '/b': got number, want null",
	} {
		checker, err := NewChecker([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if got := checker.Check([]byte(`{"a":1,"b":2,"c":3,"d":4}`)); got == nil || got.Error() != want {
				t.Fatalf("%s:\n%v, want\n%s", schema, got, want)
			}
		}
	}
}
