package resource

// Found is the response to GET /api/v1/models/search, which is beyond the specification.
type Found struct {
	Models []FoundModel `json:"models"`
}

// FoundModel is a model of a hub that can be run on the server.
type FoundModel struct {
	Model        string `json:"model"`      // by which it can be downloaded
	Repository   string `json:"repository"` // publisher/repository on the hub
	URL          string `json:"url"`
	WellKnown    bool   `json:"well_known"` // it is in the server's own list
	Downloads    *int64 `json:"downloads"`  // of the last month; null: unknown
	Likes        *int64 `json:"likes"`      // null: unknown
	Updated      *Time  `json:"updated_at"`
	Gated        bool   `json:"gated"` // its publisher lets only some users download it
	Format       string `json:"format"`
	Quantization string `json:"quantization"` // that would be downloaded; empty: unknown
	SizeBytes    *int64 `json:"size_bytes"`   // of what would be downloaded; null: unknown
	Fits         *bool  `json:"fits_memory"`  // of the server; null: unknown
	Downloaded   bool   `json:"downloaded"`
}

// Preview is the response to POST /api/v1/models/download with estimate_only, which is beyond the specification.
type Preview struct {
	Job          string        `json:"job_id,omitempty"` // of a download of the same files
	Status       string        `json:"status"`           // "estimated", "already_downloaded", or that of the job
	Model        string        `json:"model"`            // the key that it will have; @ and the quantization are added if there are several
	Repository   string        `json:"repository"`
	URL          string        `json:"url,omitempty"`
	Quantization string        `json:"quantization,omitempty"`
	Files        []PreviewFile `json:"files"`
	TotalBytes   int64         `json:"total_size_bytes"`
	LeftBytes    int64         `json:"left_bytes"`      // that are still to be fetched
	FreeBytes    *int64        `json:"disk_free_bytes"` // null: unknown
	OtherBytes   int64         `json:"other_downloads_bytes"`
	FitsDisk     bool          `json:"fits_disk"`
}

// PreviewFile is a file to download.
type PreviewFile struct {
	Path      string `json:"path"` // below the models folder
	SizeBytes int64  `json:"size_bytes"`
}

// Offer is the response to GET /api/v1/models/variants.
type Offer struct {
	// Model: by which it can be downloaded, with @ and a quantization, or with the field "quantization" if it is a URL
	Model      string    `json:"model"`
	Repository string    `json:"repository"`
	URL        string    `json:"url"`
	Variants   []Variant `json:"variants"` // best first
}

// Variant is one of the models of a repository.
type Variant struct {
	Quantization string `json:"quantization"` // empty: it has no name
	Format       string `json:"format"`
	Bits         int    `json:"bits,omitempty"` // nominal, of a weight
	SizeBytes    int64  `json:"size_bytes"`
	FitsMemory   bool   `json:"fits_memory"`
	FitsDisk     bool   `json:"fits_disk"`
	Downloaded   bool   `json:"downloaded"`
	Recommended  bool   `json:"recommended"`
}
