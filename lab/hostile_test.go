package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
)

// A text that nests or repeats as much as it can is refused in a time of a
// processor that grows with its length, with a bounded number of problems.
func TestHostileFiles(t *testing.T) {
	const most = 32 << 10
	texts := []string{
		"", "\x00", strings.Repeat("\t", 256<<10), "switches: \xff\n", "a: 1\n---\nb: 2\n",
		"name: " + strings.Repeat("a", most),
		"switches: [&a {name: s1}" + strings.Repeat(",*a", most/3) + "]",
		"switches: &a [*a, *a]",
		"switches: {<<: {name: s1}}",
	}
	for _, unit := range []string{"\t", "- ", "[", "{a: ", "a: b\n", "&a ", "*a ", "!a ", "---\n", "'", "- {a: 1}\n", "name: x\n", "\r", "#"} {
		for _, begin := range []string{"", "a: \""} {
			texts = append(texts, begin+strings.Repeat(unit, most/len(unit)))
		}
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	var wide strings.Builder // many aliases of something with many keys that there are not
	for i := range 2000 {
		fmt.Fprintf(&wide, "k%d: 1,", i)
	}
	texts = append(texts, bomb, "switches: [&a {"+wide.String()+"}"+strings.Repeat(",*a", 2000)+"]")
	for _, text := range texts {
		start := cputime.Used()
		_, err := Parse("f", []byte(text))
		if took := cputime.Used() - start; took > 5*time.Second {
			t.Errorf("%.40q…: %v", text, took)
		}
		if err == nil || strings.Count(err.Error(), "\n") > maxProblems || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%.40q…: %.300v", text, err)
		}
	}
}
