package document

import (
	"strings"
	"testing"
)

// What is wrong with a text of some hundred kilobytes is said in some hundred characters, wherever
// in it they are.
func TestMistakesQuoteLittle(t *testing.T) {
	big := strings.Repeat("x", 256<<10)
	for _, text := range []string{
		"a: &" + big + " 1\nb: *y\n", "a: *" + big + "\n", big + ": 1\n" + big + ": 2\n", "a: \"" + big + "\nb", "%" + big + "\n---\na\n", "a: b: " + big,
	} {
		_, mistakes, ok := Read([]byte(text), Limits{What: "text", Octets: 8 << 20, Lines: 1000})
		if ok {
			t.Errorf("%.20q… is read", text)
		}
		for _, m := range mistakes {
			if len(m.Text) > 1000 {
				t.Errorf("%.20q…: %d octets: %.300s", text, len(m.Text), m.Text)
			}
		}
	}
}
