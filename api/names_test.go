package api_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "web-1", "_x", "a.b.c", "-", strings.Repeat("a", 63)} {
		if err := api.CheckName("name", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", ".a", "a.", "a..b", "a b", "a/b", "ä", "a\n", "a:b", "*", ">", strings.Repeat("a", 64)} {
		if api.CheckName("name", bad) == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
	if err := api.CheckName("name", strings.Repeat("x", 10_000)); len(err.Error()) > 250 {
		t.Errorf("an error of %d octets", len(err.Error()))
	}
}
