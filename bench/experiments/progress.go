package experiments

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Progress tells people how far an experiment is. The zero value tells nobody.
// Not for several goroutines.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	name        string
	total, done int
	steps       int       // taken in this process, from which the time left is estimated
	first       time.Time // when the first of them was done
	last        time.Time // when something was written
	open        bool      // a bar stands on the terminal's line
}

// NewProgress returns one that writes to w: a bar that stays in its line on a
// terminal, else a line now and then.
func NewProgress(w io.Writer, terminal bool) *Progress {
	return &Progress{w: w, terminal: terminal, now: time.Now}
}

// Begin says what is run, in how many steps, and how many of them an earlier
// run has taken already.
func (p *Progress) Begin(name string, total, done int) {
	if p.w == nil {
		return
	}
	p.name, p.total, p.done, p.steps, p.last = name, total, done, 0, time.Time{}
	if done > 0 {
		p.Say("%d of %d samples are there already", done, total)
	}
}

// Say writes a line.
func (p *Progress) Say(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, "%s: %s\n", p.name, fmt.Sprintf(format, args...))
}

// Step says that one step is done, and what is next.
func (p *Progress) Step(next string) {
	if p.w == nil {
		return
	}
	p.done++
	p.steps++
	now := p.now()
	if p.steps == 1 {
		p.first = now
	}
	if !p.terminal && now.Sub(p.last) < 2*time.Second && p.done < p.total {
		return
	}
	p.last = now
	line := fmt.Sprintf("%s: %d of %d", p.name, p.done, p.total)
	if p.terminal {
		line = fmt.Sprintf("%s %s", line, bar(p.done, p.total))
	}
	if left := p.left(now); left > 0 {
		line += fmt.Sprintf(", %v left", left)
	}
	if next != "" {
		line += ", " + next
	}
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.open = true
		return
	}
	fmt.Fprintln(p.w, line)
}

// Advance is how far an experiment says that it is.
type Advance struct {
	Done, Total int
	Left        time.Duration // 0 if nothing is known yet
}

// advanced is a line of Step's.
var advanced = regexp.MustCompile(`^[a-z0-9-]+: (\d{1,9}) of (\d{1,9})(?:, ([0-9hms.]+) left)?(?:, |$| samples)`)

// ReadAdvance reads a line that Progress has written where there is no terminal;
// false if it does not say how far the experiment is.
func ReadAdvance(line string) (a Advance, ok bool) {
	m := advanced.FindStringSubmatch(line)
	if m == nil {
		return a, false
	}
	a.Done, _ = strconv.Atoi(m[1])
	a.Total, _ = strconv.Atoi(m[2])
	a.Left, _ = time.ParseDuration(m[3])
	return a, true
}

// End ends the bar.
func (p *Progress) End() { p.clear() }

func (p *Progress) clear() {
	if p.open {
		fmt.Fprintln(p.w)
		p.open = false
	}
}

// left estimates the time left, in whole seconds; 0 if nothing is known yet.
func (p *Progress) left(now time.Time) time.Duration {
	if p.steps < 2 || p.done >= p.total {
		return 0
	}
	each := now.Sub(p.first) / time.Duration(p.steps-1)
	return (each * time.Duration(p.total-p.done)).Round(time.Second)
}

// bar draws how much of the total is done.
func bar(done, total int) string {
	const width = 30
	full := width
	if total > 0 {
		full = min(width*done/total, width)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
