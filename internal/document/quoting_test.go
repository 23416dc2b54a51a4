package document

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for _, text := range []string{
		`name "` + long + `": want letters`, "switch " + long + " is not there", `"` + long, strings.Repeat(`"a b" `, 5000),
		`key "` + strings.Repeat(`\"`, 3000) + `" x`,
	} {
		got := Shortened(text)
		if utf8.RuneCountInString(got) > maxMessage+2 || !utf8.ValidString(got) || strings.Contains(got, strings.Repeat("ä", maxQuoted+1)) {
			t.Errorf("%.40s…: %d octets", text, len(got))
		}
	}
	plain := `unknown key "x"; allowed: ` + strings.Repeat("alpha, ", 100)
	if got := Shortened(plain); got != plain {
		t.Errorf("%q became %q", plain, got)
	}
}
