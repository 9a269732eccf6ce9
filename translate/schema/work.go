package schema

import "slices"

// Limits of the JSON schemas of one request. An engine compiles them to a grammar and checks each token against it. Measured:
// schemas within the limits compile in well under a second.
const (
	maxBytes   = 512 << 10
	maxFields  = 512    // properties of one object
	maxValues  = 20_000 // JSON values
	maxMembers = 1024   // members of one enum
	maxWork    = 60_000 // see Work
)

// Work adds up the cost of compiling the schemas of a request: one for each subschema each time a reference leads to it, and for an
// object half the square of the number of its optional properties, since any of them may be left out.
type Work struct{ sum int }

func (w *Work) take(cost int) bool {
	if w.sum+cost > maxWork {
		return false
	}
	w.sum += cost
	return true
}

type coster struct {
	*document
	cost map[*node]int // of the targets of references
	open map[*node]bool
}

func (c *coster) of(n *node) int {
	if !n.isObject() {
		return 1
	}
	sum := 1
	for i, name := range n.names {
		value := n.values[i]
		switch name {
		case "properties", "patternProperties", "dependentSchemas":
			sum += c.properties(n, value)
		case "$ref":
			sum += c.reference(value.text)
		case "enum":
			sum += len(value.values)
			if len(value.values) > maxMembers {
				sum = 2 * maxWork
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, inner := range value.values {
				if sum = min(sum+c.of(inner), 2*maxWork); sum == 2*maxWork {
					return sum
				}
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			sum += c.of(value)
		}
		if sum = min(sum, 2*maxWork); sum == 2*maxWork {
			break
		}
	}
	return sum
}

func (c *coster) properties(n, properties *node) int {
	if len(properties.names) > maxFields {
		return 2 * maxWork
	}
	sum, optional := 0, 0
	for i, name := range properties.names {
		sum = min(sum+c.of(properties.values[i]), 2*maxWork)
		if !isRequired(n, name) {
			optional++
		}
	}
	return min(sum+optional*optional/2, 2*maxWork)
}

func isRequired(n *node, name string) bool {
	required := n.get("required")
	return required != nil && slices.ContainsFunc(required.values, func(r *node) bool { return r.text == name })
}

// reference returns the cost of the target of a reference. A recursive reference adds nothing, since an engine compiles its target once.
func (c *coster) reference(ref string) int {
	target := c.target(ref)
	switch n, known := c.cost[target]; {
	case target == nil, c.open[target]:
		return 1
	case known:
		return n
	}
	c.open[target] = true
	n := c.of(target)
	delete(c.open, target)
	c.cost[target] = n
	return n
}
