package planner

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan/simulate"
)

// mostTimes is how many lines a file of times may have.
const mostTimes = 200_000

// readTimes reads a histogram of times: in each line a time, a time and how many
// there were, or from which time to which there were how many.
func readTimes(flag, file string) (*simulate.Shape, error) {
	text, err := document.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	var bins []simulate.Bin
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		b, ok := readBin(fields)
		if !ok {
			return nil, fmt.Errorf("--%s: %s:%d: %q: want a time, such as 0.52ms, TIME COUNT, or FROM TO COUNT", flag, file, n, strings.TrimSpace(line))
		}
		if bins = append(bins, b); len(bins) > mostTimes {
			return nil, fmt.Errorf("--%s: %s: want at most %d lines; write how many there are of each time, as TIME COUNT", flag, file, mostTimes)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--%s: %s: %w", flag, file, err)
	}
	s, err := simulate.NewShape(bins)
	if err != nil {
		return nil, fmt.Errorf("--%s: %s: %w", flag, file, err)
	}
	return s, nil
}

// readBin reads a line.
func readBin(fields []string) (b simulate.Bin, ok bool) {
	times, count := fields, "1"
	if len(fields) > 1 {
		times, count = fields[:len(fields)-1], fields[len(fields)-1]
	}
	n, err := strconv.ParseUint(count, 10, 53)
	if err != nil || len(times) > 2 {
		return b, false
	}
	for i, text := range times {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > time.Hour {
			return b, false
		}
		if i == 0 {
			b.From = d.Seconds()
		}
		b.To = d.Seconds()
	}
	b.Count = float64(n)
	return b, b.To >= b.From
}

// readBatch reads how many packets come together: MEAN, or MEAN:constant.
func readBatch(text string) (b simulate.Batch, err error) {
	mean, kind, said := strings.Cut(text, ":")
	b.Mean, err = strconv.ParseFloat(mean, 64)
	b.Constant = kind == "constant"
	if err != nil || said && kind != "constant" && kind != "geometric" {
		return b, fmt.Errorf("--batch %q: want a mean number of packets, such as 4 (geometric), or 4:constant", text)
	}
	return b, nil
}
