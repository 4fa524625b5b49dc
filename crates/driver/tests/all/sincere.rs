//! What a MariaDB server says before and after it lets a client in.

pub const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

pub fn greeting() -> Vec<u8> {
    let mut payload = b"\x0A11.8.6-MariaDB\0\x07\0\0\x0012345678\0".to_vec();
    payload.extend_from_slice(&[0xFE, 0xF7, 45, 2, 0, 0xFF, 0x81, 21, 0, 0, 0, 0, 0, 0, 0x1D, 0, 0, 0]);
    payload.extend_from_slice(b"901234567890\0mysql_native_password\0");
    packet(0, &payload)
}
