//go:build !race

package supervisor

const fewerSchedules = 1
