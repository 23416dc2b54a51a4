package nf

import (
	"fmt"
	"math"
	"strings"

	"github.com/weft-sdn/weft/plan/size"
)

// statement is what the paper says of its equations, and what they give as
// printed.
type statement struct {
	What       string `json:"what"`
	Paper      string `json:"paper"`
	AsPrinted  string `json:"as_printed"`
	Reproduced bool   `json:"reproduced"`
}

// sound returns the delay of copies on one CPU by equation 5, none where the
// service time of equation 4 is not above 0.
func sound(p size.Paper, overhead float64) func(n int) float64 {
	return func(n int) float64 {
		if p.SharedCopiesService(n, overhead) <= 0 {
			return math.NaN()
		}
		return p.SharedCopies(n, overhead)
	}
}

// statements checks what the paper says of Fig. 5 and about it, with the function
// that its Fig. 7 determines.
func statements() []statement {
	p := size.PaperFunction()
	counts := size.PaperCounts()
	list := []statement{
		{"T and D of one instance", "not printed", fmt.Sprintf("T = %.2f ms, D = %.2f ms from the 34 %% of Fig. 7, λ(T-I) = 0.34", p.Service, p.Delay()), true},
		equalLines(p),
	}
	for i, o := range size.PaperOverheads() {
		best := size.Least(counts, sound(p, o))
		list = append(list, statement{fmt.Sprintf("best n on a single CPU, overhead %g ms", o), fmt.Sprint(size.PaperBest()[i]), fmt.Sprint(best), best == size.PaperBest()[i]})
	}
	for _, d := range []float64{1, p.Delay(), 2} {
		q := size.Paper{Rate: p.Rate, Service: size.PaperService(p.Rate, d), Idle: p.Idle}
		n := 1
		for n < size.Most && q.SharedCopiesService(n, 0) >= 0 {
			n++
		}
		list = append(list, statement{fmt.Sprintf("service times on a single CPU, eq. 4 and 8, for D = %.2f ms", d), "n from 1 to 16", fmt.Sprintf("negative from n = %d", n), n > 16})
	}
	most, at := anyDelay(p)
	list = append(list, statement{"any D that gives the five best n on a single CPU", "all five", fmt.Sprintf("at most %d of five for D from 0.26 to 40 ms (%d at D = %.2f ms)", most, most, at), most == len(size.PaperBest())})
	falls := true
	for _, o := range size.PaperOverheads() {
		for n := 2; n <= 16; n++ {
			falls = falls && p.OwnCopies(n, o) < p.OwnCopies(n-1, o)
		}
	}
	list = append(list, statement{"delay with a CPU each, n from 1 to 16", "always falls", map[bool]string{true: "falls for each overhead", false: "does not always fall"}[falls], falls})
	return append(list, dedicated(p)...)
}

// equalLines is that Fig. 5 has one line for copies and chains.
func equalLines(p size.Paper) statement {
	worst := 0.0
	for n := 1; n <= 8; n++ {
		for _, o := range size.PaperOverheads() {
			f := float64(n)
			worst = max(worst, math.Abs(p.SharedChain(n, o/f)/p.SharedCopies(n, o)-1), math.Abs(p.OwnChain(n, o/f)/p.OwnCopies(n, o)-1))
		}
	}
	return statement{"eq. 5 = eq. 9 and eq. 6 = eq. 10 for equal overheads in all", "one line each", fmt.Sprintf("equal within %.0e, if eq. 9 reads (n-1)I/2 where it has (n-1)1/2", max(worst, 1e-15)), worst < 1e-9}
}

// anyDelay returns how many of the best numbers equation 5 gives at most, and for
// which delay of one instance.
func anyDelay(p size.Paper) (most int, at float64) {
	for d := 0.26; d < 40; d *= 1.002 {
		q := size.Paper{Rate: p.Rate, Service: size.PaperService(p.Rate, d), Idle: p.Idle}
		for _, valid := range []bool{true, false} {
			found := 0
			for i, o := range size.PaperOverheads() {
				delay := sound(q, o)
				if !valid {
					delay = func(n int) float64 { return q.SharedCopies(n, o) }
				}
				if size.Least(size.PaperCounts(), delay) == size.PaperBest()[i] {
					found++
				}
			}
			if found > most {
				most, at = found, d
			}
		}
	}
	return most, at
}

// dedicated is the best numbers for the overheads that the paper measured.
func dedicated(p size.Paper) (list []statement) {
	for _, of := range []struct {
		what  string
		delay func(n int) float64
	}{
		{"best n of copies with a CPU each, eq. 6 with 0.0005·n/2 ms", func(n int) float64 { return p.OwnCopies(n, 0.0005*float64(n)/2) }},
		{"best n of a chain with a CPU each, eq. 10 with n·O = 0.002·n/2 ms", func(n int) float64 { return p.OwnChain(n, 0.002/2) }},
		{"the same with 0.002·n/2 ms at each stage", func(n int) float64 { return p.OwnChain(n, 0.002*float64(n)/2) }},
	} {
		best := size.Least(size.PaperCounts(), of.delay)
		var delays []string
		for _, n := range []int{4, 8, 16} {
			delays = append(delays, fmt.Sprintf("%.3f", of.delay(n)))
		}
		list = append(list, statement{of.what, "16, with 4 and 8 close", fmt.Sprintf("%d; %s ms at 4, 8, 16", best, strings.Join(delays, ", ")), best == 16})
	}
	return list
}
