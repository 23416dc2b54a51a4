package partition

import (
	"fmt"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	hyd := Hydra()
	w, _ := Waxman(200, 0.15, 0.4, 1)
	grid, _ := Grid(16, 16)
	hub, _ := HubAndSpoke(2, 8, 5)
	ring, _ := Ring(12)
	ft, _ := FatTreeOf(4)
	for _, c := range []struct {
		name string
		g    *Graph
		p    []int
	}{{"hydra", hyd, []int{1, 2, 8, 32, 5}}, {"waxman", w, []int{2, 4, 8}}, {"grid", grid, []int{2, 4, 8, 16}}, {"hub", hub, []int{1, 2, 4, 8, 3}}, {"ring", ring, []int{1, 2, 3, 5, 12}}, {"ft4", ft, []int{2, 4, 3, 8}}} {
		for _, p := range c.p {
			for _, m := range []string{Auto, ByCut} {
				at := time.Now()
				o := Options{Partitions: p, Tolerance: 0.05, Method: m}
				r, err := Partition(c.g, o)
				took := time.Since(at)
				if err != nil {
					fmt.Println(c.name, p, m, err, took)
					continue
				}
				at = time.Now()
				err = Check(c.g, o, r)
				fmt.Println(c.name, p, r.Method, "cut", r.Cut, "borders", len(r.Borders), "bal", r.Balance, "sym", r.Symmetric, "conn", r.Connected(), took.Round(time.Millisecond), time.Since(at).Round(time.Millisecond), err)
			}
		}
	}
}
