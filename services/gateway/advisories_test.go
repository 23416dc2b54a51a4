package gateway

import (
	"go/parser"
	source "go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// CVE-2025-29314 and -29315, cookies that say who one is: none is set but for who
// signs in with a token, and none but that one is listened to.
func TestCVE_2025_29314_NoCookies(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback = false })
	secret := s.made(t, "ci", "read")
	for _, name := range []string{"token", "access_token", "Authorization", "rememberMe", "JSESSIONID"} {
		resp, _ := s.request(t, "GET", "/v1/hosts", "", "Cookie", name+"="+secret)
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a cookie %s: %s", name, resp.Status)
		}
	}
	resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+secret)
	if resp.StatusCode != 200 || len(resp.Cookies()) > 0 {
		t.Errorf("%s, cookies %v", resp.Status, resp.Cookies())
	}
}

// CVE-2019-13624, text of clients gets to a shell: no service can start a
// program at all, but for qos, which runs ovs-vsctl without one and shows by a
// test of this name what it passes on.
func TestCVE_2019_13624_NoShell(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(source.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		for _, i := range f.Imports {
			if name, _ := strconv.Unquote(i.Path.Value); (name == "os/exec" || name == "plugin") && path != filepath.Join("..", "qos", "ovsdb.go") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files, %v", files, err)
	}
}
