package experiments

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestClaims(t *testing.T) {
	claims := []Claim{
		{What: "REST to WebSocket", Paper: "7 times", Value: 7, Ours: 1.75},
		Claim{What: "met", Paper: "-", Ours: 2.5, Unit: "ms"}.AtMost(3),
		Claim{What: "missed", Paper: "-", Ours: 1234.5, Unit: "ms"}.AtMost(3),
		Claim{What: "not measured", Paper: "about 10 times", Value: 10, Ours: math.NaN()}.AtMost(3),
		Claim{What: "lost", Paper: "none", Ours: 0}.AtMost(0),
	}
	var text, csv bytes.Buffer
	if err := writeText(&text, claims); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"WHAT               PAPER           WEFT     WEFT/PAPER  BOUND    VERDICT",
		"REST to WebSocket  7 times         1.75     0.25        -        -",
		"met                -               2.5 ms   -           <= 3 ms  met",
		"missed             -               1234 ms  -           <= 3 ms  MISSED",
		"not measured       about 10 times  none     -           <= 3     MISSED",
		"lost               none            0        -           <= 0     met", "",
	}, "\n")
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if err := writeCSV(&csv, claims[:1]); err != nil {
		t.Fatal(err)
	}
	if got, want := csv.String(), "what,paper,weft,weft/paper,bound,verdict\nREST to WebSocket,7 times,1.75,0.25,-,-\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b, err := json.Marshal(claims[3])
	if err != nil {
		t.Fatal(err)
	}
	if want := `"weft":null`; !strings.Contains(string(b), want) {
		t.Errorf("%s has no %s", b, want)
	}
}
