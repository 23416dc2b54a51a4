package demo

import (
	"net"
	"strings"
	"testing"
)

// TestCheckPorts: the demo does not begin beside another controller.
func TestCheckPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken, free := l.Addr().String(), "127.0.0.1:0"
	for _, test := range []struct{ listen, http, want string }{
		{free, free, ""},
		{taken, free, "--listen: " + taken + " is in use"},
		{free, taken, "--http: " + taken + " is in use"},
	} {
		err := checkPorts(test.listen, test.http)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("listen %s, http %s: %v, want %q", test.listen, test.http, err, test.want)
		}
	}
}
