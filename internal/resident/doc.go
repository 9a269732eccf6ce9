// Package resident keeps what is resident of the program itself small.
package resident
