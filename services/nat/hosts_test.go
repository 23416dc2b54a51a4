package nat

import (
	"net/netip"
	"strings"
	"testing"
)

// An address is found again under its key, and the key is one that buckets take.
func TestKeysOfAddresses(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "fd00::1", "::", "2001:db8::ffff:1.2.3.4"} {
		a := netip.MustParseAddr(text)
		key := keyOf(a)
		if back, err := addressOf(key); err != nil || back != a {
			t.Errorf("%s is kept as %q and read as %s, %v", text, key, back, err)
		}
		if strings.Contains(key, ":") {
			t.Errorf("%s is kept as %q: a bucket takes no colons", text, key)
		}
	}
}
