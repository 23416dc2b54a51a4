package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/plan"
)

// Texts that nest or repeat as much as a plan may are read or refused in a
// bounded time of a processor, with a bounded number of mistakes.
func TestHostileTexts(t *testing.T) {
	const most = 256 << 10
	var texts []string
	for _, unit := range []string{"- ", "? ", "!a ", "&a ", "[", "{", "{a: ", "*a ", "a: ", "-\n ", "#", "\n", "'", "\"", "|", "a: b\n", "- a\n", "|\n", "---\n", "a,", "\\", "\r", "\t", " \n", "[],", "k: {a: b}\r"} {
		lines := 9000
		for _, begin := range []string{"", "[", "a: \"", "a: |\n  "} {
			n := (most - 10) / len(unit)
			if strings.Contains(unit, "\n") {
				n = min(n, lines)
			}
			texts = append(texts, begin+strings.Repeat(unit, n))
		}
	}
	many := func(format, before, after string) {
		var b strings.Builder
		for i := 0; b.Len() < most-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		texts = append(texts, before+b.String()+after)
	}
	many("s%d,", "workers: {a: {services: [", "]}}")
	many("w%d: {},", "workers: {", "}")
	many("p%d: {},", "partitions: {", "}")
	many("a%d: ,", "apps: {", "}")
	many("{from: f%d},", "links: [", "]")
	many("%x,", "partitions: {a: {switches: [", "]}}")
	many("s%d: {},", "config: {", "}")
	many("s%d: {a: 1},", strings.Repeat("\n", 9000)+"config: {", "}")
	for _, text := range texts {
		start := cputime.Used()
		_, err := plan.Parse("p.yaml", []byte(text))
		if took := cputime.Used() - start; took > 5*time.Second {
			t.Errorf("%.40q…: %v", text, took)
		}
		if err == nil || strings.Count(err.Error(), "\n") > 101 {
			t.Errorf("%.40q…: %.300v", text, err)
		}
	}
}

// BenchmarkParse reads a plan of a thousand workers.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("workers:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  worker-%d:\n    services: [southbound, discovery, paths, forwarding]\n    replicas: 3\n    memory: 512MiB\n    settings: {paths: {a: %d}}\n", i, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := plan.Parse("p.yaml", []byte(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
