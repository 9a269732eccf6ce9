package translate

// maxImages bounds the images of one request.
const maxImages = 64

// imageCount reads the images of one request, and counts them.
type imageCount int

func (n *imageCount) read(where, url string) (*Image, *Error) {
	if *n++; *n > maxImages {
		return nil, Invalid("invalid_value", where, "The request has more than "+itoa(maxImages)+" images, the most that this server takes.")
	}
	return parseDataURL(where, url)
}
