package ids

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Example returns a file of n rules: three in five of content, the others of protocol and
// anomaly by turns, mixed. Texts are made up, of 8 to 20 letters, and found whatever their case; one
// packet in five of weft lab traffic meets a rule of protocol if there are forty.
func Example(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d rules that were made up: KIND NAME KEY=VALUE…\n", n)
	random := rand.New(rand.NewPCG(200, 1))
	var of [3]int
	for i := range n {
		switch i % 5 {
		case 3:
			low := 10000 + 25*of[1]%1000
			fmt.Fprintf(&b, "protocol protocol-%d protocol=udp sport=%d-%d\n", of[1], low, low+4)
			of[1]++
		case 4:
			fmt.Fprintf(&b, "anomaly anomaly-%d is=%s\n", of[2], exampleAnomaly(of[2]))
			of[2]++
		default:
			text := make([]byte, 8+random.IntN(13))
			for j := range text {
				text[j] = byte('a' + random.IntN(26))
			}
			fmt.Fprintf(&b, "content content-%d text=%q nocase\n", of[0], text)
			of[0]++
		}
	}
	return b.String()
}

// exampleAnomaly returns the ith anomaly of the example.
func exampleAnomaly(i int) string {
	if plain := others(); i < len(plain) {
		return plain[i]
	}
	i -= len(others())
	return []string{fmt.Sprintf("ttl-below:%d", 1+i%5), fmt.Sprintf("size-above:%d", 1600+i), fmt.Sprintf("run-above:%d", 1000+i), fmt.Sprintf("entropy-above:%d", 7000+i)}[i%4]
}
