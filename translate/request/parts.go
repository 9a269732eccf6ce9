package request

// Limits of the texts that an engine is sent in one request. A single text may be longer.
const (
	partInputs = 32
	partBytes  = 32 << 10
)

// parts groups texts into requests to the engine.
func parts[T ~string | ~[]byte](texts []T) (parts [][]T) {
	first, size := 0, 0
	for i, text := range texts {
		if i > first && (i-first == partInputs || size+len(text) > partBytes) {
			parts = append(parts, texts[first:i])
			first, size = i, 0
		}
		size += len(text)
	}
	return append(parts, texts[first:])
}
