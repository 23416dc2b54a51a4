package flow

// Apps are not Weft's, and there are many of them: the entries and groups that an
// app has by its decisions carry a mark that is made of its name.

// AppMark tells apps apart.
type AppMark uint16

// MarkOf returns the mark of an app (FNV-1a of 32 bits, folded).
func MarkOf(app string) AppMark {
	h := uint32(2166136261)
	for i := range len(app) {
		h = (h ^ uint32(app[i])) * 16777619
	}
	return AppMark(h>>16) ^ AppMark(h)
}

// appCookies begins the cookies of the entries that apps have by their decisions.
const appCookies = 0x4150 // "AP"

// AppCookie returns the cookie of an app's entry, of whose number the lower half
// is the app's own.
func AppCookie(app AppMark, own Cookie) Cookie {
	return appCookies<<48 | Cookie(app)<<32 | own&0xffffffff
}

// App returns the mark of the app whose cookie it is; false if it is none's.
func (c Cookie) App() (AppMark, bool) {
	return AppMark(c >> 32), c>>48 == appCookies
}

// AppGroupMax is the largest number that an app gives a group.
const AppGroupMax = 1<<16 - 1

// AppGroup returns the number on switches of what an app calls group id.
func AppGroup(app AppMark, id uint32) uint32 {
	return AppGroups | uint32(app&0xfff)<<16 | id&AppGroupMax
}
