//go:build !race

package schedule

const fewerSchedules = 1
