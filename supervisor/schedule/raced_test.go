//go:build race

package schedule

// fewerSchedules: one goroutine plays them, so the race detector finds nothing in them, and takes ten times as long. `make test-rest`
// plays all.
const fewerSchedules = 20
