package llamaserver

import "math/rand/v2"

// randomCuts are pieces of very different lengths, empty ones among them.
func randomCuts(p []byte, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 0))
	var pieces [][]byte
	for len(p) > 0 {
		n := min(r.IntN(1<<r.IntN(12)), len(p))
		pieces = append(pieces, p[:n])
		p = p[n:]
	}
	return pieces
}
